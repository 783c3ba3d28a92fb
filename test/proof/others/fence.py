"""sqlfence's protocol (docs/protocol.md) without sqlfence, as a fence under test: leases by its procedures, and
writes that prove their token to a sealed table. It needs psycopg 3."""

import json
import sys
import time

import psycopg

REFUSALS = {"FT001", "FT002", "FT003"}  # no token, stale, not issued


class Fence:
    def open(self, request):
        self.dsn, self.conn = request["dsn"], None
        self.process = request.get("process", 0)
        return {"is": "ok"}

    def connected(self):
        if self.conn is None or self.conn.closed:
            self.conn = psycopg.connect(self.dsn, autocommit=True)
        return self.conn

    def acquire(self, request):
        row = self.connected().execute(
            "CALL sqlfence_lease_acquire(%s, NULL, %s)", (request["name"], request["ttl"] / 1000)
        ).fetchone()
        if row is None or row[0] is None:
            return {"is": "held"}
        return {"is": "ok", "lock": row[0], "token": row[1]}

    def write(self, request):
        time.sleep(request.get("hold", 0) / 1000)
        token, row = request["tokens"][0]["value"], request["steps"][0]["row"]
        try:
            conn = self.connected()
        except psycopg.Error as e:
            return {"is": "failed", "error": str(e)}
        try:
            done = conn.execute(
                "UPDATE fenced SET value = %s, fence_token = %s WHERE id = %s", (request["id"], -token, row)
            )
            return {"is": "ok", "rows": done.rowcount}
        except psycopg.Error as e:
            if e.sqlstate in REFUSALS:
                return {"is": "stale", "error": str(e)}
            answered = e.sqlstate and not e.sqlstate.startswith(("57", "08"))
            return {"is": "failed" if answered else "unknown", "error": str(e)}

    def release(self, request):
        self.connected().execute("CALL sqlfence_lease_release(%s)", (request["lock"],))
        return {"is": "ok"}


fence = Fence()
for line in sys.stdin:
    request = json.loads(line)
    try:
        answer = getattr(fence, request["do"])(request)
    except psycopg.Error as e:
        answer = {"is": "failed", "error": str(e)}
    answer["id"] = request["id"]
    print(json.dumps(answer), flush=True)
