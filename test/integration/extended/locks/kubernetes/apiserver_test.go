package kubernetes_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	coordination "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// program names the environment variable with the path of a kube-apiserver; if it is empty, the tests use an [api].
// scripts/with-kube-apiserver builds a kube-apiserver.
const program = "SQLFENCE_KUBE_APISERVER"

// bearer is the token of the tests' client.
const bearer = "secret"

// startAPI starts a kube-apiserver on an etcd, or an api, and returns its address.
func startAPI(t *testing.T) (address string) {
	apiserver := os.Getenv(program)
	if apiserver == "" {
		t.Logf("without %s: Kubernetes is a copy of its API for leases", program)
		server := httptest.NewServer(&api{leases: make(map[string]*coordination.Lease)})
		t.Cleanup(server.Close)
		return server.URL
	}
	etcd, _ := harness.FreeAddress(t)
	peers, _ := harness.FreeAddress(t)
	harness.Run(t, etcd, need.Program(t, "etcd"), "--data-dir", t.TempDir(), "--listen-client-urls", "http://"+etcd,
		"--advertise-client-urls", "http://"+etcd, "--listen-peer-urls", "http://"+peers,
		"--initial-advertise-peer-urls", "http://"+peers, "--initial-cluster", "default=http://"+peers)
	dir := t.TempDir()
	key, users := filepath.Join(dir, "key"), filepath.Join(dir, "users")
	writeKey(t, key)
	if err := os.WriteFile(users, []byte(bearer+",admin,admin,system:masters"), 0o600); err != nil {
		t.Fatal(err)
	}
	at, port := harness.FreeAddress(t)
	harness.Run(t, at, apiserver, "--etcd-servers", "http://"+etcd, "--bind-address", "127.0.0.1", "--secure-port", port,
		"--cert-dir", dir, "--token-auth-file", users, "--authorization-mode", "AlwaysAllow",
		"--service-account-issuer", "https://localhost", "--service-account-key-file", key,
		"--service-account-signing-key-file", key, "--service-cluster-ip-range", "10.0.0.0/24",
		"--disable-admission-plugins", "ServiceAccount")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	harness.Eventually(t, "the API is ready", func() bool {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+at+"/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+bearer)
		answer, err := client.Do(r)
		if err != nil {
			return false
		}
		return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	})
	return "https://" + at
}

// config returns the configuration of a client.
func config(address string) *rest.Config {
	return &rest.Config{Host: address, QPS: -1, BearerToken: bearer, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

func writeKey(t *testing.T, file string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
