{{- /* The Secrets whose keys are environment variables of every container that resolves references; empty without Secrets. */ -}}
{{- define "sluiceway.envFrom" -}}
{{- if .Values.secrets -}}
envFrom:
{{- range .Values.secrets }}
  - secretRef:
      name: {{ . }}
{{- end }}
{{- end }}
{{- end }}
