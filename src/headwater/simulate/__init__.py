"""Replays real publication times through the policies, at equal budgets or at their own."""
