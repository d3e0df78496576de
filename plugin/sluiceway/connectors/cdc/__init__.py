"""Change data capture: source connectors that read the transaction logs of databases."""
