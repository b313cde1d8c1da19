"""What collecting costs, against a bare client and another feed reader in the same run."""
