package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// machine describes what the figures were taken on.
func machine(s *servers) []string {
	lines := []string{fmt.Sprintf("%d cores%s, %s", runtime.NumCPU(), cpuModel(), kernel()), runtime.Version()}
	lines = append(lines, s.Versions...)
	disk := "temporary folder on " + filesystem(s.Folder)
	if took, err := fsyncTime(s.Folder); err == nil {
		disk += fmt.Sprintf("; a write and its fsync take %v there", took.Round(time.Microsecond))
	}
	return append(lines, disk)
}

func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return " (" + strings.TrimSpace(value) + ")"
		}
	}
	return ""
}

// load returns how many processes were runnable lately.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(text))[0]
}

// fsyncTime returns how long it takes until 4 KiB are on disk.
func fsyncTime(folder string) (time.Duration, error) {
	file, err := os.Create(filepath.Join(folder, "fsync"))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	var took []float64
	for range 50 {
		start := time.Now()
		if _, err := file.Write(make([]byte, 4096)); err != nil {
			return 0, err
		}
		if err := file.Sync(); err != nil {
			return 0, err
		}
		took = append(took, float64(time.Since(start)))
	}
	return time.Duration(middle(took, 2)), nil
}
