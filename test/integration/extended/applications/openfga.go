package main

var openfga = application{
	name:     "OpenFGA",
	module:   "github.com/openfga/openfga",
	version:  "v1.22.1",
	database: "SQLite (modernc), squirrel; goose",
	edits: []edit{
		{"pkg/storage/sqlite/sqlite.go", "import (\n", "import (\n\tfenced \"%s\"\n"},
		{"pkg/storage/sqlite/sqlite.go", `sql.Open("sqlite", uri)`, `fenced.Open("sqlite", uri)`},
	},
	tables: []string{"tuple", "authorization_model", "store", "assertion", "changelog"},
	tests:  "pkg/storage/sqlite",
}
