"""The dashboard: pages a person looks at. What they do, they do through the same functions as the API."""
