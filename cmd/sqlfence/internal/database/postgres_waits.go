package database

import pg "github.com/sqlfence/sqlfence/internal/dialect/postgres"

// waitsPostgres returns the query of [Source.Waits]: sessions that wait for the advisory lock of a name, or for a row
// of one of sqlfence's tables, which pg_locks shows because such a session holds or awaits the row's tuple lock.
func waitsPostgres(home Source) string {
	session := func(of string) string {
		return "COALESCE(pg_catalog.rtrim(pg_catalog.concat(" + of + ".usename, '@', COALESCE(pg_catalog.host(" + of +
			".client_addr), 'local'), ', pid ', " + of + ".pid, ', ', " + of + ".application_name), ', '), '')"
	}
	moment := func(of string) string {
		return "COALESCE(pg_catalog.to_char(" + of + ` AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), '')`
	}
	return home.Place(`SELECT COALESCE(named.name, ''), ` + session("w") + `, ` + moment("w.query_start") + `,
	CASE WHEN b.pid IS NULL THEN '' ELSE ` + session("b") + ` END, COALESCE(b.state, ''), ` + moment("b.xact_start") + `
FROM pg_catalog.pg_locks AS l
JOIN pg_catalog.pg_stat_activity AS w ON w.pid = l.pid
JOIN pg_catalog.pg_database AS here ON here.datname = pg_catalog.current_database() AND here.oid = w.datid
LEFT JOIN LATERAL (
	SELECT r.relation, pg_catalog.format('(%s,%s)', r.page, r.tuple)::tid AS at FROM pg_catalog.pg_locks AS r
	WHERE r.pid = l.pid AND r.locktype = 'tuple' AND r.database = here.oid
		AND r.relation IN (pg_catalog.to_regclass('fencing_tokens'), pg_catalog.to_regclass('fencing_leases')) LIMIT 1
) AS row ON true
LEFT JOIN LATERAL (
	SELECT t.name FROM fencing_tokens AS t WHERE l.locktype = 'advisory' AND l.objsubid = 1
		AND ` + pg.LockNumber("t.name") + ` = (l.classid::bigint << 32) | l.objid::bigint
	UNION ALL
	SELECT t.name FROM fencing_tokens AS t WHERE t.tableoid = row.relation AND t.ctid = row.at LIMIT 1
) AS named ON true
LEFT JOIN LATERAL (
	SELECT * FROM pg_catalog.pg_stat_activity AS a WHERE a.pid = ANY (pg_catalog.pg_blocking_pids(l.pid))
	ORDER BY COALESCE(a.wait_event_type, '') = 'Lock', a.xact_start LIMIT 1
) AS b ON true
WHERE NOT l.granted AND COALESCE(w.query_start <= pg_catalog.clock_timestamp() - interval '1 second', true)
	AND (named.name IS NOT NULL OR row.at IS NOT NULL)
ORDER BY 1, w.query_start`)
}
