package main

import (
	"debug/buildinfo"
	"encoding/json"
	"runtime/debug"
	"strings"
	"time"
)

// component is a component of an SBOM in the form of CycloneDX.
type component struct {
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// sbomOf returns the modules that a binary contains, from Go's record in it.
func sbomOf(binary, version string, at time.Time) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	return sbom(info, version, at)
}

func sbom(info *debug.BuildInfo, version string, at time.Time) ([]byte, error) {
	components := []component{golang("std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, one := range info.Deps {
		if one.Replace != nil {
			one = one.Replace
		}
		components = append(components, golang(one.Path, one.Version, one.Sum))
	}
	own := golang(info.Main.Path, version, "")
	own.Type = "application"
	text, err := json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata":   map[string]any{"timestamp": at.Format(time.RFC3339), "component": own},
		"components": components,
	}, "", "  ")
	return append(text, '\n'), err
}

// golang returns a Go module as a component. Its checksum is the one of go.sum.
func golang(path, version, sum string) component {
	one := component{
		Type: "library", Name: path, Version: version, PURL: "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B"),
	}
	if sum != "" {
		one.Properties = []property{{"go.sum", sum}}
	}
	return one
}
