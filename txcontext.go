package sqlfence

import "context"

// txContext is what a transaction keeps of the context that began it, for statements
// whose own context doesn't say it. database/sql runs Tx.Exec, Tx.Query and the
// statements of Tx.Prepare and Tx.Stmt with context.Background, and doesn't tell the
// driver which transaction they are of; but a connection has one at a time.
//
// A serial isn't kept: it is of one row, and most transactions write several. Nor is a
// Bypass, which has to be said for each statement.
type txContext struct {
	tokens []Token
	editor any
}

// begun notes the context that has begun a transaction of the connection.
func (s *connState) begun(ctx context.Context) {
	s.txContext = txContext{tokens: tokensFrom(ctx), editor: ctx.Value(editorKey{})}
}

// ended forgets it.
func (s *connState) ended() { s.txContext = txContext{} }

// context returns the context that a statement of the connection runs with: its own,
// with the transaction's tokens if it carries none, and with the transaction's editor
// if it has none.
func (s *connState) context(ctx context.Context) context.Context {
	if len(s.txContext.tokens) > 0 && len(tokensFrom(ctx)) == 0 {
		ctx = context.WithValue(ctx, tokensKey{}, s.txContext.tokens)
	}
	if s.txContext.editor != nil && ctx.Value(editorKey{}) == nil {
		ctx = WithEditor(ctx, s.txContext.editor)
	}
	return ctx
}
