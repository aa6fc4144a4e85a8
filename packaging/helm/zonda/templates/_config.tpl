{{/* zonda.toml. */}}
{{- define "zonda.config" -}}
{{- if .Values.config -}}
{{- .Values.config -}}
{{- else -}}
version = 1
workers = {{ .Values.workers }}
{{- if include "zonda.isNodeLocal" . }}

[[listen]]
address = {{ printf "%s:53" (include "zonda.bracketed" .Values.nodeLocal.address) | quote }}
{{- range .Values.nodeLocal.zones }}

[[zone]]
name = {{ . | quote }}

[zone.forward]
to = [{{ printf "tcp://%s" (include "zonda.bracketed" $.Values.nodeLocal.upstream) | quote }}]
{{- end }}
{{- else }}
{{- range .Values.listen }}

[[listen]]
address = {{ . | quote }}
{{- end }}

[[zone]]
name = {{ .Values.kubernetes.zone | quote }}

[zone.kubernetes]
{{- range $key, $value := .Values.kubernetes.options }}
{{ $key }} = {{ toRawJson $value }}
{{- end }}
{{- if ne .Values.snapshot.type "none" }}
snapshot = "/var/lib/zonda/cluster.snapshot"
{{- end }}
{{- end }}

[cache]
bytes = {{ .Values.cacheBytes | quote }}

[admin]
{{- if .Values.metrics.tokenSecret }}
address = {{ ternary (printf "%s:9153" (include "zonda.bracketed" .Values.nodeLocal.address)) "0.0.0.0:9153" (eq .Values.mode "node-local") | quote }}
read-token-file = "/etc/zonda-token/token"
{{- else }}
address = "off"
{{- end }}
{{- with .Values.extraConfig }}

{{ . }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* An address as it stands before a port. */}}
{{- define "zonda.bracketed" -}}
{{- if contains ":" . -}}[{{ . }}]{{- else -}}{{ . }}{{- end -}}
{{- end -}}
