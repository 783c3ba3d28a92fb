package main

const head = `# Other people's programs

Written by ` + "`make applications`" + `. It fetches five programs through the Go module proxy, changes the lines that open
their databases, and runs the programs' own tests. The programs put no tokens into their contexts: a [token source]
supplies one token for all tables. Migrations run through a database opened with [WithoutGuards].

**First table: a valid token.** CPU time is the user time of the process that uses the database, without the work of
observing and of preparing the tables. It includes SQLite's work and excludes PostgreSQL's. A cell has the median of
several rounds, with the lowest and the highest. In each round all ways run by turns.

**Second table: a stale token.** After three writes a second process issues a newer token. Under RowFence it also
writes each row. Later writes with the old token are refused, and after each refusal the tables are compared with
their earlier content. The columns on the right count guarded statements that the rule lets pass:

- Under RowFence a new row has no other holder. So an INSERT, later writes of the inserted row, and a statement that
  meets no row pass.
- Under Ledger no statement passes on PostgreSQL. On SQLite a statement that meets no row passes, because SQLite
  doesn't evaluate the guard in the WHERE if the index finds no row.

The program fails if such a statement has changed a row of another holder.

[token source]: https://pkg.go.dev/github.com/sqlfence/sqlfence#WithTokenSource
[WithoutGuards]: https://pkg.go.dev/github.com/sqlfence/sqlfence#WithoutGuards
`
