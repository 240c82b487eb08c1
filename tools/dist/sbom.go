package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// writeSBOM tells, in CycloneDX, what a Go binary is made of: what is written into it says so.
func writeSBOM(binary, version, out string, made time.Time) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	info.Main.Version = version // what Go wrote depends on the kind of checkout
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	defer file.Close()
	encoder := cyclonedx.NewBOMEncoder(file, cyclonedx.BOMFileFormatJSON).SetPretty(true)
	if err := encoder.Encode(sbom(filepath.Base(binary), info, made)); err != nil {
		return err
	}
	return file.Close()
}

func sbom(name string, info *buildinfo.BuildInfo, made time.Time) *cyclonedx.BOM {
	main := component(&info.Main, cyclonedx.ComponentTypeApplication)
	main.Name = name
	std := component(&debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")},
		cyclonedx.ComponentTypeLibrary)
	parts := []cyclonedx.Component{std}
	needs := []string{std.BOMRef}
	for _, dep := range info.Deps {
		for dep.Replace != nil {
			dep = dep.Replace
		}
		part := component(dep, cyclonedx.ComponentTypeLibrary)
		parts, needs = append(parts, part), append(needs, part.BOMRef)
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Timestamp: made.Format(time.RFC3339), Component: &main}
	bom.Components = &parts
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: main.BOMRef, Dependencies: &needs}}
	return bom
}

// component is a Go module. go.sum's h1 is the SHA-256 of a list of its files' SHA-256.
func component(m *debug.Module, kind cyclonedx.ComponentType) cyclonedx.Component {
	url := "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
	c := cyclonedx.Component{Type: kind, Name: m.Path, Version: m.Version, PackageURL: url, BOMRef: url}
	if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(sum) > 0 {
		c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	}
	return c
}
