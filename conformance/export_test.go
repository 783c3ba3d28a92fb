package conformance

// CheckNames returns the names of all checks.
func CheckNames() (names []string) {
	for _, c := range checks {
		names = append(names, c.name)
	}
	return names
}
