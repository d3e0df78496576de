"""Columnar forms of the transforms: functions on Arrow arrays. Import these modules lazily, because they import PyArrow.

Each transform's own module decides which function applies and reuses the schemas of its row form.
"""
