from py4j.java_gateway import JavaObject

# Instances of converter classes, asked in this order how to send a Python value to the JVM.
INPUT_CONVERTER: list[object]

class Py4JError(Exception):
    cause: BaseException | None
    def __init__(self, args: object = None, cause: BaseException | None = None) -> None: ...

class Py4JNetworkError(Py4JError):
    when: str | None
    def __init__(self, args: object = None, cause: BaseException | None = None, when: str | None = None) -> None: ...

class Py4JJavaError(Py4JError):
    errmsg: str
    java_exception: JavaObject
    def __init__(self, msg: str, java_exception: JavaObject) -> None: ...
