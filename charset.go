package sqlfence

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// needsPlainCharset has the name of the encoding within it.
const needsPlainCharset = "the statement or an argument has bytes beyond ASCII, and the connection's character_set_client is %.40s, " +
	"in which a backslash or a quote may be a part of a character; connect with utf8mb4"

// checkCharset refuses a guarded write that the server may read otherwise than package rewrite,
// or than the driver that writes the arguments into the text: in GBK, Big5 or Shift JIS the byte that
// escapes a quote may be the second one of a character, and an argument end its string. A
// text of ASCII reads alike in all encodings. A connection asks once, before the first such
// write, and again after a statement that may have changed the answer.
func (e *execution) checkCharset(ctx context.Context) error {
	s := e.state
	query := s.settings.profile.text().FindSplitCharset()
	if query == "" || s.plainCharset || isASCII(e.read.query) && !slices.ContainsFunc(e.read.args, mayExceedASCII) {
		return nil
	}
	return e.askOnce(ctx, query, "the connection's character set", &s.plainCharset, func(charset string) string {
		return fmt.Sprintf(needsPlainCharset, charset)
	})
}

// askOnce asks the server about its session, and refuses the write for the reason that it finds. If
// it finds none, fine says so until [connState.forgetSettings].
func (e *execution) askOnce(ctx context.Context, query, about string, fine *bool, reason func(found string) string) error {
	text, found, err := queryText(ctx, e.state.base, query)
	switch {
	case err != nil:
		return fmt.Errorf("sqlfence: asking for %s: %w", about, err)
	case found:
		return unguardable(e.table(0).name, reason(text))
	}
	*fine = true
	return nil
}

// followSettings forgets what a connection has been told of its settings where a statement that is
// about to be sent may change them.
func (s *connState) followSettings(query string) {
	if (s.plainCharset || s.assignsInOrder) && s.changesSettings(query) {
		s.forgetSettings()
	}
}

func (s *connState) forgetSettings() { s.plainCharset, s.assignsInOrder = false, false }

// changesSettings reports whether the statement may change the connection's encoding or sql_mode: as may a
// SET, a block, or a text that it executes.
func (s *connState) changesSettings(query string) bool {
	return s.settings.profile.text().FindSplitCharset() != "" && changesSession(query)
}

func isASCII[T string | []byte](text T) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// mayExceedASCII reports whether a driver may write other bytes than ASCII for the argument.
func mayExceedASCII(a driver.NamedValue) bool {
	switch v := a.Value.(type) {
	case nil, int64, uint64, float64, bool, time.Time:
		return false
	case string:
		return !isASCII(v)
	case []byte:
		return !isASCII(v)
	}
	return true
}
