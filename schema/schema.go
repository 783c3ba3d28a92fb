package schema

import "embed"

// Files has a folder of versioned files for each database: postgres, sqlite and mysql, which is for MariaDB as well. A
// file is, for example, postgres/00001_fencing_tokens.up.sql. The files create sqlfence's tables, and change nothing if
// the tables exist. goose, golang-migrate, atlas and bun can run a folder unchanged; docs/migrations.md shows how. A
// file never changes after its release: a later version of sqlfence adds a file with the next number.
//
// The files in issuers/postgres, issuers/sqlite and issuers/mysql are optional: they contain the statements of
// tokens.Store.RecordIssuers, which make the database record who changes each token. Run them after the other files. On
// SQLite and MySQL they fail, and change nothing, if the columns exist.
//
//go:embed postgres/*.sql postgres/atlas.sum sqlite/*.sql sqlite/atlas.sum mysql/*.sql mysql/atlas.sum
//go:embed issuers/*/*.sql
var Files embed.FS
