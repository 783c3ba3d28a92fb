package sqlfence_test

import (
	"context"
	"database/sql/driver"
	"slices"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// askedConn records the numbers of the parameters for which its statements are asked to convert an argument. The first
// parameter has number 1.
type askedConn struct {
	*fakedb.RecorderConn
	checks bool // as [driver.NamedValueChecker], not as [driver.ColumnConverter]
	asked  *[]int
}

func (c *askedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.RecorderConn.PrepareContext(ctx, query)
	if c.checks {
		return &checkingStmt{s.(*fakedb.RecorderStmt), c.asked}, err
	}
	return &convertingStmt{s.(*fakedb.RecorderStmt), c.asked}, err
}

type convertingStmt struct {
	*fakedb.RecorderStmt
	asked *[]int
}

func (s *convertingStmt) ColumnConverter(i int) driver.ValueConverter {
	*s.asked = append(*s.asked, i+1)
	return driver.DefaultParameterConverter
}

type checkingStmt struct {
	*fakedb.RecorderStmt
	asked *[]int
}

func (s *checkingStmt) CheckNamedValue(v *driver.NamedValue) error {
	*s.asked = append(*s.asked, v.Ordinal)
	return nil
}

// TestPlaceOfConvertedArguments: the guard's arguments may stand between the application's. A driver's statement
// converts an argument of the application by the parameter that it has in the guarded text.
func TestPlaceOfConvertedArguments(t *testing.T) {
	const query = "UPDATE books SET price = ? WHERE id = ? AND writer = ?"
	one, two := sqlfence.Token{Name: "books/1", Value: 7}, sqlfence.Token{Name: "books/2", Value: 7}
	for _, checks := range []bool{false, true} {
		var asked []int
		f := &fakedb.Recorder{Form: func(c *fakedb.RecorderConn) driver.Conn { return &askedConn{c, checks, &asked} }}
		db := open(t, f, sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Key("id")))
		s, err := db.PrepareContext(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			ctx  context.Context
			want []int // of the form that the execution before was prepared for
		}{
			{sqlfence.WithFence(t.Context(), one, two), []int{1, 4, 5}}, // a key and a token are added
			{sqlfence.WithFence(t.Context(), one), []int{1, 6, 7}},      // of two
			{sqlfence.Bypass(t.Context(), "a test"), []int{1, 4, 5}},
			{sqlfence.WithFence(t.Context(), one), []int{1, 2, 3}},
		} {
			asked = nil
			if _, err := s.ExecContext(test.ctx, 30, 1, "x"); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(asked, test.want) {
				t.Errorf("checks %v: asked about %v, want %v", checks, asked, test.want)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A openStmt counts its open statements.
type openStmt struct {
	*fakedb.RecorderStmt
	count *int
}

func (s openStmt) Close() error { *s.count--; return nil }

type openConn struct {
	*fakedb.RecorderConn
	count *int
}

func (c openConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.RecorderConn.PrepareContext(ctx, query)
	*c.count++
	return openStmt{s.(*fakedb.RecorderStmt), c.count}, err
}

// An execution in another form replaces the driver's statement. While rows of the replaced statement are open, it isn't
// closed, because SQLite's drivers would end the rows without an error.
func TestReplacedStatementOutlivesItsRows(t *testing.T) {
	guarded, bypassed := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: 7}), sqlfence.Bypass(t.Context(), "a test")
	for name, first := range map[string]context.Context{"guarded": guarded, "bypassed": bypassed} {
		t.Run(name, func(t *testing.T) {
			count := 0
			f := &fakedb.Recorder{Form: func(c *fakedb.RecorderConn) driver.Conn { return openConn{c, &count} }}
			conn, err := open(t, f, sqlfence.WithTable("books", sqlfence.RowFence("fence_token"))).Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			s, err := conn.PrepareContext(t.Context(), "UPDATE books SET price = ? RETURNING id")
			if err != nil {
				t.Fatal(err)
			}
			rows, err := s.QueryContext(first, 30)
			if err != nil {
				t.Fatal(err)
			}
			for _, ctx := range []context.Context{guarded, bypassed} {
				if _, err := s.ExecContext(ctx, 30); err != nil {
					t.Fatal(err)
				}
			}
			if count < 2 {
				t.Error("the statement of the rows was closed")
			}
			if !rows.Next() || rows.Next() || rows.Close() != nil {
				t.Error(rows.Err())
			}
			if count != 1 {
				t.Errorf("%d statements are open after the rows, want 1", count)
			}
			if err := s.Close(); err != nil || count != 0 {
				t.Errorf("%v, and %d statements are open at the end", err, count)
			}
		})
	}
}
