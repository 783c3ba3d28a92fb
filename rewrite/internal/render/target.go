package render

// orAbort writes OR ABORT.
func (w *writer) orAbort() {
	w.write(" OR ABORT")
}
