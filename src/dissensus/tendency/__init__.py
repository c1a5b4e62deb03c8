"""What would each annotator say? One file per method; `TendencyClassifier` is the way in."""
