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
