"""Stands for the command ``docker`` where a page starts databases: the servers run already, on the page's ports.

``docker exec -i NAME psql`` and ``... mariadb`` execute the statements from standard input. Other commands that the pages use do
nothing.
"""

from __future__ import annotations

import sys

from support.database import HOST, PASSWORD, USER

#: The page's ports, and what its PostgreSQL's user has for a password.
POSTGRES_PORT, MARIADB_PORT, SEARCH_PORT = 5433, 3307, 9200
POSTGRES_USER, POSTGRES_PASSWORD = "postgres", "secret"


def main(arguments: list[str]) -> int:
    if arguments[0] == "exec" and "psql" in arguments:
        _psql(sys.stdin.read())
    elif arguments[0] == "exec" and "mariadb" in arguments:
        _mariadb(sys.stdin.read())
    elif arguments[0] not in ("run", "rm") and not {"pg_isready", "healthcheck.sh"} & set(arguments):
        print(f"no stand-in for docker {' '.join(arguments)}", file=sys.stderr)
        return 1
    return 0


def _psql(statements: str) -> None:
    import psycopg

    address = f"postgresql://{POSTGRES_USER}:{POSTGRES_PASSWORD}@{HOST}:{POSTGRES_PORT}/postgres"
    with psycopg.connect(address, autocommit=True) as connection:
        cursor = connection.execute(statements.encode())
        if cursor.description:
            for row in cursor:
                print(*row, sep="|")


def _mariadb(statements: str) -> None:
    import pymysql

    connection = pymysql.connect(host=HOST, port=MARIADB_PORT, user=USER, password=PASSWORD, autocommit=True)
    with connection, connection.cursor() as cursor:
        for statement in statements.split(";\n"):
            if statement.strip():
                cursor.execute(statement)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
