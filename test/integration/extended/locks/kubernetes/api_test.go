package kubernetes_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"

	coordination "k8s.io/api/coordination/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An api is an HTTP handler that behaves like the Kubernetes API for Lease objects: creating an existing object fails,
// and an update must name the object's current version. Tests without a kube-apiserver connect client-go to it.
type api struct {
	mu     sync.Mutex
	leases map[string]*coordination.Lease
	last   int
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/apis/coordination.k8s.io/v1/namespaces/default/"), "/")
	var sent coordination.Lease
	if r.Method != http.MethodGet {
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			refuse(w, http.StatusBadRequest, meta.StatusReasonBadRequest)
			return
		}
	}
	stored, found := a.leases[name]
	switch {
	case r.Method == http.MethodPost:
		name = sent.Name
		if a.leases[name] != nil {
			refuse(w, http.StatusConflict, meta.StatusReasonAlreadyExists)
			return
		}
	case !found:
		refuse(w, http.StatusNotFound, meta.StatusReasonNotFound)
		return
	case r.Method == http.MethodGet:
		answer(w, http.StatusOK, stored)
		return
	case sent.ResourceVersion != stored.ResourceVersion:
		refuse(w, http.StatusConflict, meta.StatusReasonConflict)
		return
	}
	a.last++
	sent.ResourceVersion = strconv.Itoa(a.last)
	a.leases[name] = &sent
	answer(w, http.StatusOK, &sent)
}

func refuse(w http.ResponseWriter, code int32, reason meta.StatusReason) {
	answer(w, int(code), &meta.Status{TypeMeta: meta.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status: meta.StatusFailure, Reason: reason, Code: code})
}

func answer(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object) // fails only if the client has gone
}
