"""Prints and parses dates as Java's SimpleDateFormat does."""
