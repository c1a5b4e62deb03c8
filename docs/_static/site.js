// Opened from a folder, a page may not read versions.json: leave the switch of versions out.
if (location.protocol === "file:" && typeof DOCUMENTATION_OPTIONS !== "undefined") {
  delete DOCUMENTATION_OPTIONS.theme_switcher_json_url;
}
