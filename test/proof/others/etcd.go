package others

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"strconv"
	"testing"

	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func needsEtcd(t *testing.T) string {
	t.Helper()
	program := need.Program(t, "etcd")
	client, _ := harness.FreeAddress(t)
	peer, _ := harness.FreeAddress(t)
	at, beside := "http://"+client, "http://"+peer
	harness.Run(t, client, program, "--data-dir", t.TempDir(), "--listen-client-urls", at, "--advertise-client-urls", at,
		"--listen-peer-urls", beside, "--initial-advertise-peer-urls", beside, "--initial-cluster", "default="+beside,
		"--heartbeat-interval", "20", "--election-timeout", "200", "--log-level", "error")
	return at
}

// etcdLock creates the key with a lease, which lives for whole seconds; its fence is the key's revision.
func etcdLock(ctx context.Context, h *holder) (token int64, ok bool, err error) {
	var lease struct{ ID string }
	if err := etcd(ctx, "lease/grant", map[string]any{"TTL": math.Ceil(h.ttl.Seconds())}, &lease); err != nil {
		return 0, false, err
	}
	key := base64.StdEncoding.EncodeToString([]byte(h.name))
	put := map[string]any{"request_put": map[string]any{"key": key, "value": key, "lease": lease.ID}}
	absent := map[string]any{"key": key, "target": "CREATE", "result": "EQUAL", "create_revision": "0"}
	var answer struct {
		Header    struct{ Revision string }
		Succeeded bool
	}
	if err := etcd(ctx, "kv/txn", map[string]any{"compare": []any{absent}, "success": []any{put}}, &answer); err != nil {
		return 0, false, err
	}
	if !answer.Succeeded {
		return 0, false, etcd(ctx, "lease/revoke", map[string]any{"ID": lease.ID}, &struct{}{})
	}
	h.lock = lease.ID
	token, err = strconv.ParseInt(answer.Header.Revision, 10, 64)
	return token, err == nil, err
}

func etcdUnlock(ctx context.Context, h *holder) error {
	return etcd(ctx, "lease/revoke", map[string]any{"ID": h.lock}, &struct{}{})
}

// etcd calls the gateway.
func etcd(ctx context.Context, method string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, os.Getenv(Service)+"/v3/"+method, bytes.NewReader(body))
	if err != nil {
		return err
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd: %s: %s", method, reply.Status)
	}
	return json.NewDecoder(reply.Body).Decode(answer)
}
