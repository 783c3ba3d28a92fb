package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// buildBase builds this program with the sqlfence of another checkout, and returns its path. The build tag base leaves
// out features that the other sqlfence may lack.
func buildBase(ctx context.Context, checkout, folder string) (string, error) {
	checkout, err := filepath.Abs(checkout)
	if err != nil {
		return "", err
	}
	_, file, _, _ := runtime.Caller(0)
	source := filepath.Dir(file)
	mod := filepath.Join(folder, "base.mod")
	for from, to := range map[string]string{"go.mod": mod, "go.sum": filepath.Join(folder, "base.sum")} {
		text, err := os.ReadFile(filepath.Join(source, from))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return "", err
		}
	}
	program := filepath.Join(folder, "base")
	for _, args := range [][]string{
		{"mod", "edit", "-replace", "github.com/sqlfence/sqlfence=" + checkout, mod},
		{"build", "-modfile", mod, "-mod=mod", "-tags", "base", "-o", program, "."},
	} {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = source
		cmd.Env = append(os.Environ(), "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("building with the sqlfence in %s: %w\n%s", checkout, err, bytes.TrimSpace(out))
		}
	}
	return program, nil
}
