from subprocess import Popen
from typing import Any

# Java's packages, classes, objects and their members are looked up in the JVM at run time, so their types are unknown here.

class JavaObject:
    def __getattr__(self, name: str) -> Any: ...

class JavaClass:
    def __call__(self, *args: object) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...

class JavaPackage:
    def __getattr__(self, name: str) -> Any: ...

class JVMView:
    def __getattr__(self, name: str) -> Any: ...

class JavaGateway:
    jvm: JVMView
    # Set by pyspark.java_gateway.launch_gateway where Python started the JVM; missing where spark-submit did.
    proc: Popen[bytes]
