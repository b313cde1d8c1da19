"""Services outside, and how they are asked and told: models, webhooks, mail servers, chat services."""
