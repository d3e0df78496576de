"""Runs tasks that read or write DataFrames: their loops on the driver, their records on the executors."""
