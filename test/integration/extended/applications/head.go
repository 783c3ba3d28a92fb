package main

const head = `# Other people's programs

Written by ` + "`make applications`" + `, which fetches these programs through the Go module
proxy, changes the lines that open their databases, and runs their own tests. They
write without tokens in their contexts: one token, from [WithTokenSource], is for all of their
tables. Migrations run through a database opened with [WithoutGuards].

CPU time is that of the process that uses the database, in user mode, without what observing
and preparing the tables takes: the median of several rounds, and in each all ways run
by turns, with the lowest and the highest. SQLite's work is a part of it, PostgreSQL's isn't.

In the second table another process takes over after three writes. It has a newer token, and
where rows are fenced has written each of them. What the program writes from then on is
refused; after each refusal the tables are compared with what they held. Below sqlfence each
guarded statement that is sent after that is watched. By RowFence a new row has no holder
yet: such an INSERT passes, and so do writes of these rows and statements that meet no row. By
Ledger no such statement passes on PostgreSQL, and on SQLite only one that meets no row: there
the guard stands in the WHERE, which isn't evaluated if the search by an index finds no row.
The program fails if one has changed a row.

[WithTokenSource]: https://pkg.go.dev/github.com/sqlfence/sqlfence#WithTokenSource
[WithoutGuards]: https://pkg.go.dev/github.com/sqlfence/sqlfence#WithoutGuards
`
