package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"log/slog"
	"net/http"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/XSAM/otelsql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/tokens"
)

// A program is the reader's.
type program struct {
	db       *sql.DB
	leases   *lease.Leases
	election *lease.Election
}

func (p *program) work(ctx context.Context) {}

func (p *program) stopped(err error) {}

func fail(w http.ResponseWriter, err error) {}

var (
	p               *program
	terms           []lease.Term
	driverName, dsn string
	db              *sql.DB
	store           *tokens.Store
	logger          *slog.Logger
	mode            sqlfence.Mode
	mock            sqlmock.Sqlmock
	name            string
	baseDriver      driver.Driver
	table           sqlfence.Option
	spans           otelsql.Option
	w               io.Writer
)

func code(ctx context.Context) (err error) {
	// goes here
	return err
}
