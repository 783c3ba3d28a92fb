package sqltext

import (
	"slices"
	"strconv"
)

// A Builder writes a statement. The caller must set Dialect before writing anything but plain text. A Builder must not
// be copied after it has been used.
//
// sqlfence's own statements are best written as one template by [Builder.SQL] or [Render]. A statement made from the
// application's is written in fragments, which allocates nothing but the SQL string.
type Builder struct {
	Dialect Dialect

	buf  []byte
	args []any
}

// Write writes SQL as it is.
func (b *Builder) Write(parts ...string) {
	buf := b.buf
	for _, s := range parts {
		buf = append(buf, s...)
	}
	b.buf = buf
}

// WriteString writes SQL as it is.
func (b *Builder) WriteString(s string) { b.buf = append(b.buf, s...) }

// Repeat writes the bytes from lo to hi of the text written so far.
func (b *Builder) Repeat(lo, hi int) { b.buf = append(b.buf, b.buf[lo:hi]...) }

// Len returns how many bytes were written.
func (b *Builder) Len() int { return len(b.buf) }

// Grow makes room for n bytes more.
func (b *Builder) Grow(n int) { b.buf = slices.Grow(b.buf, n) }

// Cap returns the capacity in bytes.
func (b *Builder) Cap() int { return cap(b.buf) }

// Reset empties the builder and keeps its room.
func (b *Builder) Reset() { b.buf, b.args = b.buf[:0], nil }

// String returns the text written so far.
func (b *Builder) String() string { return string(b.buf) }

// Int writes an integer constant.
func (b *Builder) Int(n int64) {
	b.buf = strconv.AppendInt(b.buf, n, 10)
}

// Text writes a text constant.
func (b *Builder) Text(s string) { b.WriteString(b.Dialect.Text(s)) }

// Bool writes a truth value.
func (b *Builder) Bool(v bool) { b.WriteString(b.Dialect.Bool(v)) }

// Placeholder writes the placeholder of the argument number n, from 1, with the cast that the database needs to know
// the type. The caller keeps the arguments. If the database has no numbers, the caller must pass the arguments in the
// order of the placeholders, once for each use.
func (b *Builder) Placeholder(n int, t Type) {
	facts := b.Dialect.Capabilities()
	b.buf = append(b.buf, facts.Placeholder)
	if facts.Numbers.Is() {
		b.Int(int64(n))
	}
	b.WriteString(b.Dialect.Cast(t))
}

// Arg adds an argument and writes its placeholder: one for each use, in the order of the SQL, because drivers count
// placeholders differently.
func (b *Builder) Arg(value any) {
	facts := b.Dialect.Capabilities()
	b.args = append(b.args, value)
	b.buf = append(b.buf, facts.Placeholder)
	if facts.OwnNumbers.Is() {
		b.Int(int64(len(b.args)))
	}
}

// Args returns the arguments that were added, in the order of their placeholders.
func (b *Builder) Args() []any { return b.args }
