package coverage

// Limited returns a collector that keeps n fingerprints.
func Limited(n int) *Collector {
	c := New()
	c.limit = n
	return c
}
