package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// pooled has the tests of pgx's pool use package fencepgx. The tests that are left out are taken out of the
// files: they name what fencepgx hasn't got.
func pooled(dir string, s suite) error {
	const folder = "fencedpool"
	if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, folder, "pool.go"), []byte(fencedPool), 0o644); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(dir, "pgxpool", "*_test.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := withoutTests(file, s.leftOut)
		if err != nil {
			return err
		}
		if text == "" {
			continue // its helpers serve other files; its tests, which are left out, don't run
		}
		text = strings.ReplaceAll(text, `"github.com/jackc/pgx/v5/pgxpool"`, `"github.com/jackc/pgx/v5/`+folder+`"`)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// withoutTests returns a file's text without the functions of some tests; empty if it had no other test.
func withoutTests(file string, tests []leftOut) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	removed, stays := false, false
	for _, decl := range slices.Backward(tree.Decls) {
		f, ok := decl.(*ast.FuncDecl)
		switch {
		case !ok:
		case slices.ContainsFunc(tests, func(l leftOut) bool { return l.test == f.Name.Name }):
			text = slices.Delete(text, set.Position(f.Pos()).Offset, set.Position(f.End()).Offset)
			removed = true
		default:
			stays = stays || strings.HasPrefix(f.Name.Name, "Test")
		}
	}
	if removed && !stays {
		return "", nil
	}
	return string(text), nil
}

// fencedPool stands in for package pgxpool. A table is registered, so that sqlfence parses the statements.
const fencedPool = `package pgxpool

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/fencepgx"
)

type (
	Config                = pgxpool.Config
	Conn                  = fencepgx.Conn
	Pool                  = fencepgx.DB
	ShouldPingParams      = pgxpool.ShouldPingParams
	TraceAcquireStartData = pgxpool.TraceAcquireStartData
	TraceAcquireEndData   = pgxpool.TraceAcquireEndData
	TraceReleaseData      = pgxpool.TraceReleaseData
)

func ParseConfig(dsn string) (*Config, error) { return pgxpool.ParseConfig(dsn) }

func New(ctx context.Context, dsn string) (*Pool, error) { return fenced(pgxpool.New(ctx, dsn)) }

func NewWithConfig(ctx context.Context, c *Config) (*Pool, error) {
	return fenced(pgxpool.NewWithConfig(ctx, c))
}

func fenced(pool *pgxpool.Pool, err error) (*Pool, error) {
	if err != nil {
		return nil, err
	}
	return fencepgx.New(pool, sqlfence.WithTable("sqlfence_registered", sqlfence.RowFence("fence_token")))
}
`
