"""Sluiceway's example DAGs. Each is paused at first."""

from __future__ import annotations

from sluiceway.dags.example_beside_generated import dag as beside_generated
from sluiceway.dags.example_file_to_file import dag as file_to_file
from sluiceway.dags.example_landing_to_files import dag as landing_to_files
from sluiceway.dags.example_sensor_gate import dag as sensor_gate

__all__ = ["beside_generated", "file_to_file", "landing_to_files", "sensor_gate"]
