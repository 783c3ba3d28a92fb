package main

const head = `# Other people's programs

Written by ` + "`make applications`" + `, which fetches these programs through the Go module
proxy, changes the lines that open their databases, and runs their own tests. They
write without tokens in their contexts: one token, from [WithTokens], is for all of their
tables. Migrations run through a database opened with [WithBypass].

In the second table another process takes over after three writes. It has a newer token, and
where rows are fenced has written each of them. What the program writes from then on is
refused; after each refusal the tables are compared with what they held. By RowFence a
new row is nobody's yet: such an INSERT passes, and so do writes of these rows and
statements that meet no row. By Ledger such statements don't pass, except on SQLite one
that meets no row.

[WithTokens]: https://pkg.go.dev/github.com/sqlfence/sqlfence#WithTokens
[WithBypass]: https://pkg.go.dev/github.com/sqlfence/sqlfence#WithBypass
`
