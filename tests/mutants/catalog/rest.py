"""REST API: bodies, status codes, and errors."""

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "rest-number-spelling",
        "rest/bodies.py",
        '{"parse_int": str, "parse_float": str} if numbers_as_text',
        '{"parse_int": str} if numbers_as_text',
        "A number in a config gets another spelling.",
    ),
    Mutant(
        "rest-boolean",
        "rest/bodies.py",
        "return str(value).lower() if isinstance(value, bool) else str(value)",
        "return str(value)",
        "A boolean in a config becomes True.",
    ),
    Mutant(
        "rest-nested",
        "rest/bodies.py",
        "    if nested:\n",
        "    if False:\n",
        "A config with an object as a value is accepted.",
    ),
    Mutant(
        "rest-unknown-field",
        "rest/bodies.py",
        "    if unknown:\n",
        "    if False:\n",
        "A request to create a connector may have any fields.",
        tests=("tests/unit/rest/test_bodies.py",),
    ),
    Mutant(
        "rest-trace",
        "rest/bodies.py",
        'return fields if status.trace is None else {**fields, "trace": status.trace}',
        'return {**fields, "trace": status.trace}',
        "A status without a failure has a trace.",
    ),
    Mutant(
        "rest-version",
        "rest/bodies.py",
        "None if plugin.version == UNDEFINED_VERSION else plugin.version",
        "plugin.version",
        "A plugin without a version shows one.",
        tests=("tests/unit/rest/test_bodies.py",),
    ),
    Mutant(
        "rest-offset-fields",
        "rest/bodies.py",
        'if not isinstance(entry, dict) or entry.keys() - {"partition", "offset"}:',
        "if not isinstance(entry, dict):",
        "An offset with unknown fields is accepted.",
        tests=("tests/unit/rest/test_bodies.py",),
    ),
    Mutant(
        "rest-conflict",
        "rest/errors.py",
        "    (ConflictError, 409),",
        "    (ConflictError, 400),",
        "A conflict has the status code of a bad request.",
        tests=("tests/unit/rest/test_app.py", "tests/unit/rest/test_connector_routes.py"),
    ),
    Mutant(
        "rest-created",
        "rest/connector_routes.py",
        "    return JsonResponse(bodies.info_json(info), 201 if created else 200, headers)",
        "    return JsonResponse(bodies.info_json(info), 200, headers)",
        "PUT of a new connector's config answers 200.",
    ),
    Mutant(
        "rest-restart-body",
        "rest/connector_routes.py",
        "if any(chosen.values()) else Response(status_code=204)",
        "",
        "A restart without parameters has a body.",
    ),
    Mutant(
        "rest-flag",
        "rest/connector_routes.py",
        '    return text.lower() == "true"',
        '    return text.lower() in ("true", "1", "yes")',
        "A flag of a restart is true for other texts than true.",
    ),
    Mutant(
        "rest-allow",
        "rest/errors.py",
        '        headers["Allow"] = ",".join(_methods(request))',
        "        pass",
        "The response to a method that a path lacks names one route's methods only.",
    ),
)
