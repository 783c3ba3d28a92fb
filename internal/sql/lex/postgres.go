package lex

import (
	pg "github.com/sqlfence/sqlfence/internal/dialect/postgres"
)

// Postgres is how PostgreSQL reads.
//
// Source: PostgreSQL's src/backend/parser/scan.l and scansup.c; NAMEDATALEN is 64.
var Postgres = newRules(Rules{
	lineEnds:       "\r\n",
	nestedComments: true,

	rawStrings:     "bx",
	plainStrings:   "n",
	escapeStrings:  "e",
	unicodeEscapes: true,
	scs:            true,
	continued:      true,
	dollarQuotes:   true,
	encoding:       "client_encoding",

	localeFolds: true,
	catalogs:    true,
	maxName:     63,
	quote:       pg.Text.Quote,
})
