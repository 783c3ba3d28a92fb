package cli

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
	"github.com/sqlfence/sqlfence/tokens"
)

func (a *app) demo() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show a stale write that lands without sqlfence, and is refused with it",
		Long: `Show what fencing tokens are for, on a SQLite database in a temporary file: A is paused,
B takes over and writes, A wakes up and writes what it had decided before. It needs no database
of yours. Where the write isn't as expected, the status is 1.`,
		Example: `  sqlfence demo`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			without, err := playIn(cmd.Context())
			if err != nil {
				return err
			}
			with, err := playIn(cmd.Context(), sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
			if err != nil {
				return err
			}
			err = a.write(struct {
				Without *story `json:"without_sqlfence"`
				With    *story `json:"with_sqlfence"`
			}{without, with}, func() {
				a.tell("Without sqlfence:", without)
				a.tell("With sqlfence:", with)
			})
			if err == nil && (without.Price != 10 || with.Price != 20) {
				err = errors.New("the stale write didn't end as it should")
			}
			return err
		},
	}
}

// A story is what two holders did, and how it ended.
type story struct {
	Steps []step `json:"steps"`
	Price int64  `json:"price"` // of the book, in the end
}

type step struct {
	Who   string `json:"who"`
	Token int64  `json:"token"`
	Does  string `json:"does"`
	Sent  string `json:"sent,omitempty"`  // the statement as it was written
	Error string `json:"error,omitempty"` // why it was refused
}

// playIn plays the story in a database of its own, which is fenced if there are options.
func playIn(ctx context.Context, options ...sqlfence.Option) (s *story, err error) {
	folder, err := os.MkdirTemp("", "sqlfence-demo-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	source, err := database.Parse("sqlite:"+filepath.Join(folder, "books.db"), true)
	if err != nil {
		return nil, err
	}
	db, err := source.Open(options...)
	if err != nil {
		return nil, err
	}
	defer db.Close() // before the folder goes
	return play(ctx, db)
}

func play(ctx context.Context, db *sql.DB) (*story, error) {
	store, err := tokens.New(db)
	if err != nil {
		return nil, err
	}
	if err := store.Setup(ctx); err != nil {
		return nil, err
	}
	const table = "CREATE TABLE books (id integer PRIMARY KEY, price integer NOT NULL, fence_token bigint NOT NULL DEFAULT 0)"
	if _, err := db.ExecContext(ctx, table); err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(sqlfence.Bypass(ctx, "the first book"), "INSERT INTO books VALUES (1, 15, 0)"); err != nil {
		return nil, err
	}

	s := &story{}
	a, errA := store.Issue(ctx, "books")
	s.add("A", a, "takes the lock, reads the price and is paused", "", nil)
	b, errB := store.Issue(ctx, "books")
	s.add("B", b, "takes over", "", nil)
	errB = errors.Join(errB, s.write(ctx, db, "B", b, "writes", "UPDATE books SET price = 20 WHERE id = 1"))
	errA = errors.Join(errA, s.write(ctx, db, "A", a, "wakes up and writes", "UPDATE books SET price = 10 WHERE id = 1"))
	return s, errors.Join(errA, errB, db.QueryRowContext(ctx, "SELECT price FROM books").Scan(&s.Price))
}

// write has somebody send a statement. That it is stale is a part of the story.
func (s *story) write(ctx context.Context, db *sql.DB, who string, t sqlfence.Token, does, query string) error {
	_, err := db.ExecContext(sqlfence.WithFence(ctx, t), query)
	s.add(who, t, does, query, err)
	if errors.Is(err, sqlfence.ErrStale) {
		return nil
	}
	return err
}

func (s *story) add(who string, t sqlfence.Token, does, query string, err error) {
	next := step{Who: who, Token: t.Value, Does: does, Sent: query}
	if err != nil {
		next.Error = err.Error()
	}
	s.Steps = append(s.Steps, next)
}

func (a *app) tell(title string, s *story) {
	fmt.Fprintf(a.out, "%s\n", title)
	for _, step := range s.Steps {
		fmt.Fprintf(a.out, "  %s (token %d) %s", step.Who, step.Token, step.Does)
		if step.Sent != "" {
			fmt.Fprintf(a.out, ": %s", step.Sent)
		}
		fmt.Fprintln(a.out)
		if step.Error != "" {
			fmt.Fprintf(a.out, "    refused: %s\n", step.Error)
		}
	}
	verdict := "B's write is still there"
	if s.Price == 10 {
		verdict = "B's write is lost"
	}
	fmt.Fprintf(a.out, "  The price is %d: %s.\n\n", s.Price, verdict)
}
