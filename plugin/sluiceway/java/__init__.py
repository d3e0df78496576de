"""Reproduces the parts of Java that configs, records and files depend on: regular expressions, numbers, dates, key stores."""
