"""A server for agents (Model Context Protocol), with the rights of the API key it is given."""
