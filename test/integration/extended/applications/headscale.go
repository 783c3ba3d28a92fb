package main

// headscale's migrations run through the first database handle. headscale must open the database again after the
// migrations.
var headscale = application{
	name:     "headscale",
	module:   "github.com/juanfont/headscale",
	version:  "v0.26.1",
	database: "SQLite (glebarez), gorm; gormigrate",
	edits: []edit{
		{"hscontrol/db/db.go", "import (\n", "import (\n\tfenced \"%s\"\n"},
		{"hscontrol/db/db.go", `sqlite.Open(cfg.Sqlite.Path)`, `&sqlite.Dialector{Conn: fenced.MustOpen("sqlite", cfg.Sqlite.Path)}`},
		{"hscontrol/db/db.go", `postgres.Open(dbString)`, `postgres.New(postgres.Config{Conn: fenced.MustOpen("pgx", dbString)})`},
		{"hscontrol/db/db.go", "\tdb := HSDatabase{\n", `	if migrated, err := dbConn.DB(); err == nil {
		fenced.Close(migrated)
	}
	if dbConn, err = openDB(cfg); err != nil {
		return nil, err
	}
	db := HSDatabase{
`},
	},
	note:     "The tests that fail start a PostgreSQL server of their own, which doesn't run as root.",
	tables:   []string{"users", "nodes", "pre_auth_keys", "api_keys", "policies"},
	migrates: true,
	tests:    "hscontrol/db",
}
