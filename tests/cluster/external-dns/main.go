// One synchronization of external-dns, with its own flags, providers, plan and registry of TXT
// records: the endpoints that it is to have come as JSON on standard input in place of a cluster's
// objects, whose sources need modules that not every proxy serves. Prints what was changed as JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"sigs.k8s.io/external-dns/endpoint"
	"sigs.k8s.io/external-dns/pkg/apis/externaldns"
	"sigs.k8s.io/external-dns/plan"
	"sigs.k8s.io/external-dns/provider"
	"sigs.k8s.io/external-dns/provider/pdns"
	"sigs.k8s.io/external-dns/provider/rfc2136"
	"sigs.k8s.io/external-dns/registry/txt"
)

func main() {
	if err := synchronize(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "external-dns:", err)
		os.Exit(1)
	}
}

// newProvider makes the provider that the flags name.
func newProvider(ctx context.Context, cfg *externaldns.Config, names *endpoint.DomainFilter) (provider.Provider, error) {
	switch cfg.Provider {
	case "pdns":
		return pdns.New(ctx, cfg, names)
	case "rfc2136":
		return rfc2136.New(ctx, cfg, names)
	}
	return nil, fmt.Errorf("--provider=%s: only pdns and rfc2136 are built in", cfg.Provider)
}

// synchronize does what external-dns does each minute.
func synchronize(ctx context.Context) error {
	cfg := externaldns.NewConfig()
	if err := cfg.ParseFlags(os.Args[1:]); err != nil {
		return err
	}
	var wanted []*endpoint.Endpoint
	if err := json.NewDecoder(os.Stdin).Decode(&wanted); err != nil {
		return fmt.Errorf("endpoints on standard input: %w", err)
	}
	names := endpoint.NewDomainFilter(cfg.DomainFilter)
	server, err := newProvider(ctx, cfg, names)
	if err != nil {
		return err
	}
	registry, err := txt.New(cfg, server)
	if err != nil {
		return err
	}
	current, err := registry.Records(ctx)
	if err != nil {
		return err
	}
	ctx = context.WithValue(ctx, provider.RecordsContextKey, current)
	wanted, err = registry.AdjustEndpoints(wanted)
	if err != nil {
		return err
	}
	policy, known := plan.Policies[cfg.Policy]
	if !known {
		return errors.New("--policy: unknown")
	}
	changes := (&plan.Plan{
		Policies:       []plan.Policy{policy},
		Current:        current,
		Desired:        wanted,
		DomainFilter:   endpoint.MatchAllDomainFilters{names, registry.GetDomainFilter()},
		ManagedRecords: cfg.ManagedDNSRecordTypes,
		ExcludeRecords: cfg.ExcludeDNSRecordTypes,
		OwnerID:        registry.OwnerID(),
	}).Calculate().Changes
	if changes.HasChanges() {
		if err := registry.ApplyChanges(ctx, changes); err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]int{
		"create": len(changes.Create), "update": len(changes.UpdateNew), "delete": len(changes.Delete),
	})
}
