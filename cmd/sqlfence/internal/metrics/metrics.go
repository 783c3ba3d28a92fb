// Package metrics reads what a program tells Prometheus.
package metrics

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
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

// Read asks an address for the samples with names that begin with a prefix. Errors are that it can't be reached, or
// answers otherwise than in Prometheus's text format; they name the host alone, as the rest may have a password in it.
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
		return nil, fmt.Errorf("%s answers %s", request.URL.Host, answer.Status)
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

func parseLine(line string) (s Sample, ok bool) {
	end := strings.IndexAny(line, "{ \t")
	if end < 0 {
		return s, false
	}
	s.Name, line = line[:end], line[end:]
	if rest, found := strings.CutPrefix(line, "{"); found {
		if s.Labels, line, ok = parseLabels(rest); !ok {
			return s, false
		}
	}
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return s, false
	}
	value, err := strconv.ParseFloat(fields[0], 64)
	s.Value = value
	return s, err == nil
}

// parseLabels reads what stands behind a brace, and returns what is behind the other one.
func parseLabels(text string) (labels map[string]string, rest string, ok bool) {
	labels = make(map[string]string)
	for {
		text = strings.TrimLeft(text, ", \t")
		if rest, ok = strings.CutPrefix(text, "}"); ok {
			return labels, rest, true
		}
		name, value, found := strings.Cut(text, "=")
		value, quoted := strings.CutPrefix(strings.TrimLeft(value, " \t"), `"`)
		if !found || !quoted {
			return nil, "", false
		}
		var b strings.Builder
		i := 0
		for ; i < len(value) && value[i] != '"'; i++ {
			if value[i] != '\\' || i+1 == len(value) {
				b.WriteByte(value[i])
				continue
			}
			i++
			if value[i] == 'n' {
				b.WriteByte('\n')
			} else {
				b.WriteByte(value[i])
			}
		}
		if i == len(value) {
			return nil, "", false
		}
		labels[strings.TrimSpace(name)] = b.String()
		text = value[i+1:]
	}
}
