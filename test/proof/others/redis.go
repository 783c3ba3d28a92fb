package others

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func needsRedis(t *testing.T) string {
	t.Helper()
	program := need.Program(t, "redis-server")
	address, port := harness.FreeAddress(t)
	harness.Run(t, address, program, "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	return address
}

// redisLock is a lock with a time to live, and a fence of the key's counter.
func redisLock(ctx context.Context, h *holder) (token int64, ok bool, err error) {
	taken, err := redis(ctx, "SET", "lock:"+h.name, h.lock, "NX", "PX", strconv.FormatInt(h.ttl.Milliseconds(), 10))
	if err != nil || taken != "OK" {
		return 0, false, err
	}
	time.Sleep(h.pause)
	fence, err := redis(ctx, "INCR", "fence:"+h.name)
	if err != nil {
		return 0, false, err
	}
	token, err = strconv.ParseInt(fence, 10, 64)
	return token, err == nil, err
}

func redisUnlock(ctx context.Context, h *holder) error {
	const script = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
	_, err := redis(ctx, "EVAL", script, "1", "lock:"+h.name, h.lock)
	return err
}

// forgetRedis is what a restart without persistence does.
func forgetRedis(address string) { _, _ = redisAt(context.Background(), address, "FLUSHALL") }

func redis(ctx context.Context, args ...string) (string, error) {
	return redisAt(ctx, os.Getenv(Service), args...)
}

// redisAt sends one command on a connection of its own, and returns the answer; nil is an empty text.
func redisAt(ctx context.Context, address string, args ...string) (string, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(conn, b.String()); err != nil {
		return "", err
	}
	r := bufio.NewReader(conn)
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(line[1:])
	switch line[0] {
	case '-':
		return "", fmt.Errorf("redis: %s", text)
	case '$':
		if text == "-1" {
			return "", nil
		}
		line, err = r.ReadString('\n')
		return strings.TrimSpace(line), err
	}
	return text, nil
}
