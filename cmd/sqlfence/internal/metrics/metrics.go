// Package metrics reads a program's metrics for Prometheus.
package metrics

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// A Sample is the value of a metric with its labels.
type Sample struct {
	Name   string
	Labels map[string]string
	Value  float64
}

// most is how many bytes are read of an answer.
const most = 64 << 20

// Read fetches the samples from an address, and returns the samples with names that begin with a prefix. An error means
// that the address can't be reached, or that the response isn't in Prometheus's text format. Errors contain only the
// host, because the rest of the address may contain a password.
func Read(ctx context.Context, client *http.Client, address, prefix string) ([]Sample, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("not an address")
	}
	request.Header.Set("Accept", "text/plain; version=0.0.4")
	answer, err := client.Do(request)
	if of := (*url.Error)(nil); errors.As(err, &of) {
		err = of.Err
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", request.URL.Host, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s responded with the status %s", request.URL.Host, answer.Status)
	}
	found, err := parse(io.LimitReader(answer.Body, most), prefix)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", request.URL.Host, err)
	}
	return found, nil
}

// parse reads the format's lines: # comments, and name{label="value",…} value time.
// Source: https://prometheus.io/docs/instrumenting/exposition_formats/
func parse(text io.Reader, prefix string) (found []Sample, err error) {
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimLeft(lines.Text(), " \t")
		if !strings.HasPrefix(line, prefix) || strings.HasPrefix(line, "#") {
			continue
		}
		s, ok := parseLine(line)
		if !ok {
			return nil, errors.New("a line isn't one of Prometheus's text format")
		}
		found = append(found, s)
	}
	return found, lines.Err()
}

var (
	sample = regexp.MustCompile(`^([^{ \t]+)[ \t]*(\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?[ \t]*([^ \t]+)`)
	label  = regexp.MustCompile(`([^{,=\s]+)\s*=\s*("(?:[^"\\]|\\.)*")`)
)

func parseLine(line string) (s Sample, ok bool) {
	parts := sample.FindStringSubmatch(line)
	if parts == nil {
		return s, false
	}
	for _, l := range label.FindAllStringSubmatch(parts[2], -1) {
		if s.Labels == nil {
			s.Labels = make(map[string]string)
		}
		value, err := strconv.Unquote(l[2]) // the format's escapes are among Go's
		if err != nil {
			return s, false
		}
		s.Labels[l[1]] = value
	}
	value, err := strconv.ParseFloat(parts[3], 64)
	s.Name, s.Value = parts[1], value
	return s, err == nil
}
