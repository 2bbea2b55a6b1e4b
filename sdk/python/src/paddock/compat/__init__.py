"""Classes of other sandboxes' clients, on a Paddock server: for programs that were written for those, with the import changed."""
