"""Speed and quality beside other packages, each as rows of figures."""
