package schema

import "embed"

// Files has a folder of versioned files for each database, postgres, sqlite and mysql (which
// is MariaDB's, too), such as postgres/00001_fencing_tokens.up.sql. They create sqlfence's own
// tables, and change nothing where these are there. goose, golang-migrate, atlas and bun run a
// folder as it is; docs/migrations.md shows how. A file is never changed after its
// release: what a later version needs is in a file of its own, with the next number.
//
// What a database has only where it is wanted is in folders of its own, to be copied: issuers/postgres, issuers/sqlite
// and issuers/mysql have what tokens.Store.RecordIssuers sends. They run behind the others. On SQLite and
// MySQL they fail where the columns are there, and change nothing.
//
//go:embed postgres/*.sql postgres/atlas.sum sqlite/*.sql sqlite/atlas.sum mysql/*.sql mysql/atlas.sum
//go:embed issuers/*/*.sql
var Files embed.FS
