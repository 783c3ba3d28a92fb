package main

// A group is a chapter of the report.
type group struct {
	name         string // in titles, for -only
	title        string
	text         string // what it means, and what it doesn't
	measurements func() []*measurement
	absolute     bool       // times, not ratios
	shows        []quantity // beside the time
	plots        []string   // tables that are also drawn
}

// groups are all that there are, in the order of the report.
var groups = []group{
	{
		name: "ways", title: "A guarded write, and what one would do without sqlfence", measurements: ways,
		text: `One row is updated by its key, by db.Exec, in a table of one row for each caller. "By hand" is
the bare driver: with the SQL that sqlfence sends, which shows what the guard costs the
database and what the wrapper costs beside it, and with a simple predicate in WHERE, which
skips stale rows silently and can't tell "stale" from "no such row". The two statements of
the blog race: another one may take over between them. A lock in the database is held for
a transaction, and doesn't help against a holder that is late. Over a network each message is
delayed by the time that is named at the top, in each direction. Where commits wait for a
disk (fsync), that wait is most of the time, and the ratios are near 1 whatever the processors
do: the columns in memory, the client's CPU time and the chapter on the server show that part.
The row's key and its 64 rows fit into memory; nothing is said about larger tables.`,
		shows: []quantity{cpuRatio, allocs, trips},
		plots: []string{"1 caller", "64 callers", "Network"},
	},
	{
		name: "kinds", title: "Kinds of statements and rules", measurements: kinds,
		text: `Each statement writes one row, by one caller. UPDATE under Serial carries a serial; a DELETE's
row is added again, which isn't measured. The same table serves all contestants, so the
plain write has the columns of all rules and uses none. The limit of db.Exec on SQLite in memory is the guarded
SQL, prepared by hand: an UPDATE by its key takes 0.5 times (RowFence) and 0.7 to 0.85 times (Ledger) the plain db.Exec.`,
		shows: []quantity{allocs},
		plots: []string{"db.Exec", "Prepared"},
	},
	{
		name: "bulk", title: "Many rows in a statement", measurements: bulk,
		text: `INSERT of rows with one argument each, which is the worst case for a guard that adds an
argument, into a table without an index; UPDATE and DELETE of all 1,000 rows of a table. What
empties or fills the table before a call isn't measured. Placeholders that are named cost SQLite
itself a search for each. The limit for 30,000 rows is the guarded SQL by hand: it takes SQLite 1.1 (Ledger) to
1.4 times (RowFence) the CPU time of the plain one. The rest is that a text of more than 64 KiB is read anew at each execution, by
two scanners, which takes a row 200 (Ledger) to 450 ns (Key); SQLite's own work takes 250.`,
		plots: []string{"INSERT", "UPDATE and DELETE"},
	},
	{
		name: "seals", title: "Sealed tables", measurements: seals,
		text: `Prepared statements by one caller, on a table with triggers that refuse a write without proof of a token (docs/sealed.md), beside the
same rules without a seal. A DELETE's row is added again, which isn't measured. In memory it is the
database's own work; where commits wait for a disk, that is most of the time.`,
		plots: []string{"One row", "Many rows"},
	},
	{
		name: "refused", title: "Writes that are refused", measurements: refused,
		text: `A late holder's write, beside one that breaks a CHECK constraint: both are refused by the
database. pgx drops a statement that failed from its cache, so a refusal may cost it more round
trips than a success.`,
		shows: []quantity{trips},
	},
	{
		name: "wrapper", title: "sqlfence itself", measurements: wrapper, absolute: true,
		text: `No database: the driver does nothing, or package rewrite is called by itself. "New" texts have not
been seen before, so they are read; "known" ones are found among the plans that are kept. Times are
absolute here, because there is nothing to compare them with; they are this machine's.`,
		shows: []quantity{allocs, heap},
	},
	{
		name: "tokens", title: "Issuing tokens", measurements: issue,
		text: `All callers take tokens of one name, each as soon as it has got the one before. Calls of one
process are coalesced, so a token's part of a commit gets smaller with the number of callers; the
statement by hand waits for the row's lock and for a commit each time.`,
		shows: []quantity{rate},
		plots: []string{"Tokens of one name"},
	},
	{
		name: "leases", title: "Leases and locks", measurements: leases,
		text: `Acquire and release, nothing between. They don't promise the same: a lock without durability is
gone or granted twice after a crash, only sqlfence and etcd give a token that rises, and
pg_advisory_lock lasts as long as its session. etcd is a single member, without the network and
the quorum that it is made for. pglock's module is not in the proxy; its statements were written
anew, with the transactions and the isolation level that it uses. One key: who can wait in a line
(etcd, pg_advisory_lock) is told; the others ask again every millisecond, which no time measured
here charges to the server. The first line is what is compared with.`,
		shows: []quantity{rate, trips},
		plots: []string{"A key for each caller", "A key for each caller, SQLite", "One key"},
	},
	{
		name: "server", title: "What a write costs PostgreSQL", measurements: serverSide,
		text: `64 writers, each with a row of its own, and all with tokens of one name. A multixact is what several
transactions need that share the lock of a row; their number space is used up as that of
transactions is. Server CPU is that of all its processes. The bytes of WAL include what the
server writes for itself, and full pages after a checkpoint. Planning and execution times are the server's own,
by EXPLAIN ANALYZE, which itself adds to the execution's. Under Ledger an item of WITH that does nothing, and the
locks, take 1.6 times the plain write's CPU time by themselves (docs/adr/0015): that is the limit.`,
		shows: []quantity{meter(meterMulti), meter(meterWAL), meter(meterCPU), cpuRatio},
		plots: []string{"64 writers"},
	},
}
