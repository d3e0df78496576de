"""The only user of pyspark: the session, the driver application and the placement of tasks as Spark jobs."""
